/** The editor. In a shadow root its styles are adopted sheets, which the content security policy need not allow. */
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { Compartment, Prec } from "@codemirror/state";
import { keymap } from "@codemirror/view";
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
  "&": { height: "40vh", border: "1px solid #888", background: "#fff", color: "#111" },
  ".cm-scroller": { overflow: "auto" },
});

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
