"""The documentation as a site: its pages, links and pictures. MkDocs calls `hooks`."""
