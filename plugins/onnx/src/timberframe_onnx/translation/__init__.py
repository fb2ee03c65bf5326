"""How a model becomes a graph: values, scopes, the table of translators."""
