/** The program of the editor as a request to copy. */
import { useState } from "preact/hooks";
import { type Asked, asCurl, asPython, asTypeScript } from "./snippets.ts";

const FORMS = { curl: asCurl, TypeScript: asTypeScript, Python: asPython } as const;
type Form = keyof typeof FORMS;

export function Request({ asked, hasToken }: { asked: () => Asked; hasToken: boolean }) {
  const [form, setForm] = useState<Form>("curl");
  const [text, setText] = useState("");
  const [note, setNote] = useState("");
  const show = (chosen: Form) => {
    setForm(chosen);
    setNote("");
    setText(FORMS[chosen](asked(), { url: location.origin, hasToken }));
  };
  return (
    <details onToggle={(event) => event.currentTarget.open && show(form)}>
      <summary>This request as code</summary>
      <p class="bar">
        <label>
          Form{" "}
          <select value={form} onChange={(event) => show(event.currentTarget.value as Form)}>
            {Object.keys(FORMS).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <button
          type="button"
          onClick={() =>
            void navigator.clipboard.writeText(text).then(
              () => setNote("Copied"),
              () => setNote("The browser does not allow it; select the text instead."),
            )
          }
        >
          Copy
        </button>
        <span role="status">{note}</span>
      </p>
      <section aria-label="Request">
        <pre
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
          tabIndex={0}
        >
          {text}
        </pre>
      </section>
    </details>
  );
}
