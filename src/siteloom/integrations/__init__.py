"""Siteloom inside other people's programs, one package or module for each."""
