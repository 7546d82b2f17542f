"""Main waits for an answer of its child, which waits for a question, while another child works."""

import multiprocessing
import subprocess
import sys
from multiprocessing.connection import Connection

WORK = "while True: pass"


def answer(questions: Connection, main_side: Connection) -> None:
    main_side.close()
    questions.send(questions.recv() + 1)


if __name__ == "__main__":
    with subprocess.Popen([sys.executable, "-c", WORK]):
        context = multiprocessing.get_context("fork")
        answers, questions = context.Pipe()
        child = context.Process(target=answer, args=(questions, answers))
        child.start()
        questions.close()
        print(answers.recv(), "done", flush=True)  # hangs here
