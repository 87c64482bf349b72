"""The workbench of a cluster: its sample pages, what people said of them, and what is learned of that."""
