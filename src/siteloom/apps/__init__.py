"""What people and programs use: the command line, the web application with its REST API, and the demo."""
