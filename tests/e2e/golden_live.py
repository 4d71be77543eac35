"""Outputs of live commands on a simulated machine, compared with tests/golden/expected/live/; see golden.py."""
import golden

if __name__ == "__main__":
    golden.run([golden.of_live])
