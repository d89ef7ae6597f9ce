"""From a question to moments: words, vectors, people, time and the graph, fused and ranked."""
