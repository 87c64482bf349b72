"""The operations of Siteloom, such as ingest, learn and extract.

An operation is a plain function of a context and a request, and returns a result. The command line, the jobs
of the web application and Python call the same function. Only this package knows the order of the stages.
"""
