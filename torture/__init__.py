"""What Siteloom must bear: hostile input, kill -9, full disks, load. `make torture` does it all, at length.

Each part is a function from a plan to ordeals. `make test` runs the same functions with little effort.
"""
