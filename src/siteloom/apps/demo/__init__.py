"""The demo: the whole life cycle on built-in web sites."""
