/** Asks for a credential, which stays in the memory of the page. */
import { useState } from "preact/hooks";
import { SvcError } from "../../packages/client/src/error.ts";

export const NOT_ACCEPTED =
  "The service does not accept this key or token: it may be wrong, expired or revoked.";
export const isRefused = (problem: unknown) => problem instanceof SvcError && problem.status === 401;

/** The characters that a header can carry (RFC 6750, 2.1). */
const CREDENTIAL = /^[\x21-\x7e]+$/;

export function Login({ onToken }: { onToken: (token: string) => void }) {
  const [text, setText] = useState("");
  const [note, setNote] = useState("");
  const give = () => {
    const token = text.trim();
    const isPossible = CREDENTIAL.test(token);
    setNote(isPossible ? "" : "A key or token has letters, digits and signs, and no spaces.");
    if (isPossible) onToken(token);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        give();
      }}
    >
      <p>This service asks for a credential. The page keeps it until it is closed or loaded again.</p>
      <label>
        API key or access token{" "}
        <input type="password" autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
      </label>{" "}
      <button type="submit">Continue</button>
      <p role="status">{note}</p>
    </form>
  );
}
