"""Tables without examples."""
