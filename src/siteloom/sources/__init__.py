"""What Siteloom reads: pages in every format, tables of known records, examples."""
