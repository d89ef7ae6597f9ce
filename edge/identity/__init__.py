"""Who it is: galleries give scored candidates, the resolver alone decides."""
