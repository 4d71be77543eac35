"""The outputs of what runs live on a made machine, as tests/golden/expected/live/ has them; golden.py says more."""
import golden

if __name__ == "__main__":
    golden.run([golden.of_live])
