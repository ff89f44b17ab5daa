"""`fewtags review RUN DATA`: a page where a person goes through suggestions fast.

index      the suggestions on disk, as arrays that are mapped into memory (10 million rows and more)
orders     which question comes first
filters    which questions are asked
queue      the next question, and how many are left
decisions  the answers, in SQLite: nothing is lost
session    all of these together: next, answer, undo, bulk
words      question and reason in words
images, attention    what is shown
security   who may ask, and from where
app        pages and their JSON twins
export     answers back into a label table
"""
