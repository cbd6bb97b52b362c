"""The paper's experiments: a grid of runs, their results, and the paper's numbers beside ours."""
