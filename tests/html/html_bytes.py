"""Bytes as the web has them: whole tags, broken tags, and anything at all."""

from __future__ import annotations

from hypothesis import strategies as st

FRAGMENTS = (
    # whole tags
    b"<html>", b"<head>", b"<title>", b"</title>", b"<body class=a>", b"<p>", b"</p>",
    b"<div id='x'>", b"</div>",
    b"<b>", b"</b>", b"<br/>", b"<table>", b"<tr>", b"<td>", b"</table>", b"<ul><li>",
    b"<A HREF=\"/x?a=1&b=2\">",
    b"<o:p>", b"<a\xc2\xb2>", b"<svg><path/>", b"<template>", b"</template>", b"<select><option>",
    # early and late ends
    b"</body>", b"</html>", b"</BODY >", b"</body", b"</html x>",
    # broken tags
    b"<", b"</", b"</>", b"<p", b"<p a", b"<p a=", b"<p a='", b'<p a="x', b"<p a=b/c=d>",
    b"<p =a>", b"<p / a>", b"< p>",
    b"<a\"b>", b"<1>", b"</ p>", b">", b"'", b'"', b"=", b"/", b"/>",
    # comments, declarations, instructions
    b"<!--", b"-->", b"--!>", b"<!-->", b"<!--->", b"<!-- x -->", b"--", b"-", b"<!", b"<!doctype html>",
    b"<!DOCTYPE a [<!ENTITY e 'e'>]>", b"<?xml version='1.0'?>", b"<?", b"<![CDATA[", b"]]>",
    # elements whose content is no markup
    b"<script>", b"</script>", b"<SCRIPT type=a>", b"</script ", b"<style>", b"</style>",
    b"<textarea>", b"</textarea>",
    b"<xmp>", b"</xmp/>", b"<iframe>", b"</iframe>", b"<noscript>", b"</noscript>", b"<noembed>",
    b"<noframes>",
    # text
    b"x", b"two words", b" ", b"\n", b"\r\n", b"\t", b"\x0c", b"\x0b", b"&amp;", b"&lt", b"&#0;",
    b"&#x110000;", b"&nbsp;",
    b"&e;", b"&", "é\u00a0ü".encode(), b"\xff\xfe", b"\xe9", b"\x00",
)  # fmt: skip

html_like = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=3), max_size=40).map(b"".join)
html_bytes = st.binary(max_size=200) | html_like
