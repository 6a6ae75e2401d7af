"""What the chat can do with words: read, copy and search answers, write prompts elsewhere, explain itself."""

from textual import on
from textual.app import SuspendNotSupported
from textual.widgets import Input, Markdown

from peagle_cli.errors import BadInputError
from peagle_cli.text import one_line, printable
from peagle_cli.tui import editor
from peagle_cli.tui.conversation import Exchange
from peagle_cli.tui.keys import key_of
from peagle_cli.tui.lesson import Lesson, bundled
from peagle_cli.tui.markdown import CodeBlock, code_blocks
from peagle_cli.tui.screens.copy import CopyScreen
from peagle_cli.tui.screens.talking import TalkScreen
from peagle_cli.tui.screens.tour import TourScreen
from peagle_cli.tui.search import Search
from peagle_cli.tui.session import Phase
from peagle_cli.tui.talk import Talk
from peagle_cli.tui.widgets.answer import AnswerView
from peagle_cli.tui.widgets.completions import Completions
from peagle_cli.tui.widgets.prompt import Prompt
from peagle_cli.tui.widgets.search import SearchLine
from peagle_cli.tui.widgets.status import StatusLine
from peagle_cli.tui.widgets.transcript import TranscriptView
from peagle_cli.tui.widgets.typed import Typed


class WordsScreen(TalkScreen):
    """A screen with a transcript, an answer view in its place, a prompt, and a status line that search replaces."""

    def __init__(self, talk: Talk) -> None:
        super().__init__(talk)
        self._answer: int | None = None  # the exchange that is shown as Markdown; None for the latest
        self._search: Search | None = None
        self._match: int | None = None
        self._before_search = (0.0, True)  # where the reader was, and whether they followed the end

    # Writing

    @on(Typed)
    def _typed(self, message: Typed) -> None:
        self.query_one(Prompt).focus()
        self.query_one(Prompt).insert(printable(message.text))

    @on(Prompt.Completing)
    def _completing(self, message: Prompt.Completing) -> None:
        self.query_one(Completions).propose(message.proposals, message.chosen)

    @on(Completions.Taken)
    def _taken(self, message: Completions.Taken) -> None:
        self.query_one(Prompt).take(message.proposal)

    def action_edit_prompt(self) -> None:
        """Write the prompt in one's own editor."""
        prompt = self.query_one(Prompt)
        try:
            with self.app.suspend():
                written = editor.edit(prompt.text)
        except SuspendNotSupported:
            self._tell("There is no terminal here that an editor could have.")
        except BadInputError as error:
            self._tell(str(error))
        else:
            prompt.replace_text(printable(written))
        self.refresh()

    # Reading

    @property
    def reading(self) -> bool:
        """Whether an answer is shown as Markdown, in place of the tokens."""
        return self.query_one(AnswerView).display

    def action_view(self) -> None:
        """Show the latest answer as Markdown, or the tokens again."""
        view, tokens = self.query_one(AnswerView), self.query_one(TranscriptView)
        if not (self.reading or self._talk.conversation.exchanges or self._talk.phase is Phase.REPLYING):
            self._tell("There is no answer yet.")
            return
        had_focus = view.has_focus or tokens.has_focus
        view.display, tokens.display = not view.display, view.display
        if self.reading:
            self._show_answer(None)
        if had_focus:
            (view if self.reading else tokens).focus()

    def action_other_answer(self, by: int) -> None:
        """Read the answer before or after."""
        count = len(self._talk.conversation.exchanges)
        here = count - 1 if self._answer is None else self._answer
        if 0 <= here + by < count:
            self._show_answer(here + by if here + by < count - 1 else None)

    def grow_answer(self) -> None:
        """Show what the answer being read has become; a new one takes its place where the latest was being read."""
        if self.reading and self._answer is None:
            exchanges = self._talk.conversation.exchanges
            view = self.query_one(AnswerView)
            if exchanges and view.prompt == exchanges[-1].prompt:
                view.grow(exchanges[-1].answer)
            elif exchanges:
                self._show_answer(None)

    def _show_answer(self, number: int | None) -> None:
        self._answer = number
        exchanges = self._talk.conversation.exchanges
        shown = exchanges[-1 if number is None else number] if exchanges else Exchange("", "")
        growing = number is None and self._talk.phase is Phase.REPLYING
        self.query_one(AnswerView).show(shown.prompt, shown.answer, growing)

    @on(Markdown.LinkClicked)
    def _link_clicked(self, message: Markdown.LinkClicked) -> None:
        message.stop()
        self._tell(f"Nothing is opened. The link leads to {one_line(message.href)}")

    def show_tokens(self) -> None:
        """Forget what was searched and read: there is another transcript."""
        self.action_end_search()
        if self.reading:
            self.action_view()

    # Copying

    def action_copy(self, what: str) -> None:
        """Copy the answer in view, or a block of its code."""
        exchanges = self._talk.conversation.exchanges
        if not exchanges:
            self._tell("There is no answer yet.")
            return
        answer = exchanges[-1 if self._answer is None or not self.reading else self._answer].answer
        if what == "answer":
            self._copy(answer, f"the answer, {len(answer)} characters")
            return
        blocks = code_blocks(answer)
        if not blocks:
            self._tell("There is no block of code in the answer.")
        elif len(blocks) == 1:
            self._copy_block(blocks[0])
        else:
            self.app.push_screen(CopyScreen(blocks), self._copy_block)

    def _copy_block(self, block: CodeBlock | None) -> None:
        if block is not None:
            self._copy(block.text, f"a block of code: {block.description}")

    def _copy(self, text: str, description: str) -> None:
        self.app.copy_to_clipboard(printable(text))
        self._tell(f"Copied {description}.")

    # Searching

    def action_search(self) -> None:
        """Search the transcript."""
        if self.reading:
            self.action_view()
        view = self.query_one(TranscriptView)
        self._before_search = (view.scroll_y, view.following)
        self._search = Search(self._talk.transcript.spans)
        self.query_one(StatusLine).display = False
        self.query_one(SearchLine).begin()
        self._find(self.query_one(Input).value)

    @on(SearchLine.Changed)
    def _pattern_changed(self, message: SearchLine.Changed) -> None:
        self._find(message.pattern)

    @on(SearchLine.Ended)
    def _search_ended(self, message: SearchLine.Ended) -> None:
        self.query_one(SearchLine).display = False
        self.query_one(StatusLine).display = True
        if message.stay and self._search:
            self.query_one(TranscriptView).focus()
            on, back, end = (
                key_of(self.app, f"watch.{name}") for name in ("next-match", "previous-match", "end-search")
            )
            self._tell(f"{self._count()} · {on}, {back} next and before · {end} ends it")
            return
        self.action_end_search()
        top, following = self._before_search
        if following:
            self.query_one(TranscriptView).action_follow()
        else:
            self.query_one(TranscriptView).scroll_to(y=top, animate=False)
        self.query_one(Prompt).focus()

    def action_next_match(self, by: int) -> None:
        """Go to the next match, or the one before; from the last on to the first."""
        if self._search is None:
            return
        self._search.find(self._search.pattern)  # in what has come meanwhile, too
        if self._search:
            self._match = ((self._match if self._match is not None else -by) + by) % len(self._search)
        self._show_match()
        if not self.query_one(SearchLine).display:
            self._tell(self._count())

    def action_end_search(self) -> None:
        """Mark no matches any more."""
        self._search = self._match = None
        self.query_one(TranscriptView).show_matches(None)
        self.refresh_bindings()

    @property
    def searching(self) -> bool:
        """Whether there are matches to go through."""
        return self._search is not None

    def _find(self, pattern: str) -> None:
        if self._search is not None:
            self._search.find(pattern)
            self._match = self._search.first_from(self.query_one(TranscriptView).first_place) if self._search else None
            self._show_match()
            self.refresh_bindings()

    def _show_match(self) -> None:
        self.query_one(TranscriptView).show_matches(self._search, self._match)
        self.query_one(SearchLine).count(self._count())

    def _count(self) -> str:
        if self._search is None or not self._search.pattern:
            return ""
        return f"{self._match + 1} of {len(self._search)}" if self._match is not None else "not found"

    # Explaining

    def action_tour(self) -> None:
        """Explain with steps of this conversation, or of a demo where nothing was drafted yet."""
        lesson: Lesson = self._talk.lesson if self._talk.lesson.example() else bundled()
        self.app.push_screen(TourScreen(lesson), self._toured)

    def _toured(self, written: str | None) -> None:
        self.query_one(Prompt).focus()
        if written:
            self.query_one(Prompt).insert(printable(written))
