"""From moments to an answer: what they show, said in sentences that cite them."""
