"""What a platform is: profiles/*.yaml, checked and explained."""
