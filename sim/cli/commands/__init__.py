"""Words of the commands: arguments, options and help; what they do is in modules beside."""
