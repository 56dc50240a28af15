"""What a plan cannot know is said."""
import subprocess


def test_options_the_plan_does_not_follow_are_named(berth):
    command = [berth, "explain", "--emulate", "2x4:a100", "--", "sbatch", "--reservation=maint",
               "--switches=1", "--wrap", "true"]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    assert "not planned for: --reservation" in text
    assert "not planned for: --switches" in text
    assert "--licenses" not in text
