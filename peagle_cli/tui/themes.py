"""Themes as Textual wants them, with a variable of the style sheets for every colour."""

from textual.theme import Theme as TextualTheme

from peagle_cli.themes import Theme


def textual_theme(name: str, theme: Theme) -> TextualTheme:
    """`theme` by the name `name`. Its tokens' colours are `$token-accepted` and so on."""
    tokens = {f"token-{state}": getattr(theme.tokens, state) for state in theme.tokens.__struct_fields__}
    # "Default" is not known to be dark or bright, so that what stands on a bar of colour is black; and Textual's own
    # sheets want two names more of a theme like that.
    on_bar = "ansi_black" if theme.ansi else theme.background
    more = {"ansi-background": "ansi_default", "ansi-foreground": "ansi_default"} if theme.ansi else {}
    return TextualTheme(
        name=name,
        ansi=theme.ansi,
        dark=theme.dark,
        primary=theme.primary,
        secondary=theme.quiet,
        accent=theme.accent,
        success=theme.tokens.accepted,
        warning=theme.tokens.correction,
        error=theme.error,
        foreground=theme.foreground,
        background=theme.background,
        surface=theme.surface,
        panel=theme.panel,
        variables={
            **tokens,
            **more,
            "quiet": theme.quiet,
            "rule": theme.rule,
            "text-error": theme.error,
            "border": theme.primary,
            "border-blurred": theme.rule,
            "block-cursor-background": theme.primary,
            "block-cursor-foreground": on_bar,
        },
    )
