/** The code editor. In a shadow root its styles are adopted style sheets, which need no permission in the content security policy. */
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, Prec } from "@codemirror/state";
import { oneDark } from "@codemirror/theme-one-dark";
import { keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup, EditorView } from "codemirror";

export interface Editor {
  text: () => string;
  show: (text: string) => void;
  speak: (language: string) => void;
}

const MODES: Readonly<Record<string, () => ReturnType<typeof python>>> = {
  python,
  javascript: () => javascript(),
  typescript: () => javascript({ typescript: true }),
};

const LOOK = EditorView.theme({
  "&": { height: "40vh", border: "1px solid #888" },
  ".cm-scroller": { overflow: "auto" },
  // The text colours are chosen for the plain background.
  "& .cm-activeLine, & .cm-activeLineGutter": { backgroundColor: "transparent" },
});
/** Follows the colour scheme of the page when it loads. */
const isDark = matchMedia("(prefers-color-scheme: dark)").matches;

/** Replaces a colour of each theme that has too little contrast (WCAG 2.2, 1.4.3). */
const READABLE = HighlightStyle.define([
  isDark
    ? { tag: [tags.name, tags.deleted, tags.character, tags.propertyName], color: "#f28b93 !important" }
    : { tag: [tags.regexp, tags.escape, tags.special(tags.string)], color: "#b83200 !important" },
]);

export function makeEditor(place: HTMLElement, run: () => void): Editor {
  const root = place.attachShadow({ mode: "open" });
  const parent = document.createElement("div");
  root.append(parent);
  const mode = new Compartment();
  const start = () => {
    run();
    return true;
  };
  const view = new EditorView({
    parent,
    root,
    extensions: [
      Prec.highest(keymap.of([{ key: "Mod-Enter", run: start }])),
      basicSetup,
      LOOK,
      isDark ? oneDark : syntaxHighlighting(defaultHighlightStyle),
      syntaxHighlighting(READABLE),
      mode.of([]),
      EditorView.contentAttributes.of({ "aria-label": "Code" }),
    ],
  });
  return {
    text: () => view.state.doc.toString(),
    show: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    speak: (language) => view.dispatch({ effects: mode.reconfigure(MODES[language]?.() ?? []) }),
  };
}
