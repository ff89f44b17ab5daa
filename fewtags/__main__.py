from fewtags.cli import main

main()
