// Nothing: the precompiled headers need a file of their own to belong to.
