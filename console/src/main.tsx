/** The page: asks for a credential where the service wants one, then shows the console. A credential stays in this page's memory. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { SvcError } from "../../packages/client/src/error.ts";
import { Svc } from "../../packages/client/src/svc.ts";
import { Console } from "./console.tsx";
import { Login, NOT_ACCEPTED } from "./login.tsx";
import { textOf } from "./text-of.ts";

const clientOf = (token?: string) => new Svc({ baseUrl: location.origin, token });

function Page() {
  const [token, setToken] = useState<string>();
  const [svc, setSvc] = useState(() => clientOf());
  const [keepsSessions, setKeepsSessions] = useState(false);
  const [languages, setLanguages] = useState<string[]>();
  const [wantsToken, setWantsToken] = useState(false);
  const [error, setError] = useState<string>();
  useEffect(() => {
    setError(undefined);
    svc.languages().then(
      (all) => {
        setLanguages(all.filter(({ status }) => status === "ready").map(({ name }) => name));
        svc.sessions.list().then(
          () => setKeepsSessions(true),
          () => setKeepsSessions(false),
        );
      },
      (problem) => {
        const isRefused = problem instanceof SvcError && problem.status === 401;
        if (isRefused) setWantsToken(true);
        // Before a credential was given there is nothing wrong with it.
        if (!isRefused) setError(textOf(problem));
        else if (token !== undefined) setError(NOT_ACCEPTED);
      },
    );
  }, [svc]);
  return (
    <main>
      <h1>Console</h1>
      {error !== undefined && <p role="alert">{error}</p>}
      {wantsToken && languages === undefined && (
        <Login
          onToken={(given) => {
            setToken(given);
            setSvc(clientOf(given));
          }}
        />
      )}
      {languages !== undefined && (
        <Console
          svc={svc}
          languages={languages}
          hasToken={token !== undefined}
          keepsSessions={keepsSessions}
        />
      )}
    </main>
  );
}

render(<Page />, document.body);
