"""`fewtags simulate DATA`: what the loop complete → review → train is worth, with the truth in place of a person.

wanted     what is asked for, and its mistakes
truth      complete labels: who answers, and what of it is known when
label_table    how good a completed label table is
rounds     one round: train, complete, score, and what would be asked next
simulate   all rounds, resumable
results    simulation.csv, and what it says in sentences
page       simulation.html
"""
