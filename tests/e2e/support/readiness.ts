/**
 * What each component of a running system says of its liveness and readiness, while something is wrong and afterwards. Each
 * component is a process of its own.
 */
import type { Service } from "@svc/cli/instance";
import { ROUTES } from "@svc/test-kit/system/health-routes";
import { until } from "@svc/test-kit/system/processes";
import type { System } from "@svc/test-kit/system/system";

export const SERVICES = Object.keys(ROUTES) as Service[];

/** Until a fault shows, and until it is forgotten. On a quiet machine either takes less than 10 s. */
const SHOWN_MS = 60_000;
/** One answer, on a machine that does other work. */
const ANSWER_MS = 30_000;

/** Of a component that does not answer: `unreachable` alone. */
export type Reasons = Readonly<Record<string, string>>;

export async function reasonsAt(url: string): Promise<Reasons | undefined> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
    const { reasons } = (await answer.json()) as { reasons?: Reasons };
    return answer.status === 200 ? undefined : (reasons ?? {});
  } catch {
    return { unreachable: "" };
  }
}

const addressOf = (service: Service, { instance }: Pick<System, "instance">) =>
  `http://127.0.0.1:${instance.ports[service]}`;

export const reasonsOf = (service: Service, system: Pick<System, "instance">) =>
  reasonsAt(addressOf(service, system) + ROUTES[service][1]);

export async function isLive(service: Service, system: Pick<System, "instance">): Promise<boolean> {
  const answer = await fetch(addressOf(service, system) + ROUTES[service][0]).catch(() => undefined);
  return answer?.status === 200;
}

export async function untilAllReady(system: Pick<System, "instance">): Promise<void> {
  let unready: [Service, Reasons | undefined][] = [];
  const areReady = async () => {
    const found = await Promise.all(
      SERVICES.map(async (service) => [service, await reasonsOf(service, system)] as const),
    );
    unready = found.filter(([, reasons]) => reasons !== undefined) as typeof unready;
    return unready.length === 0;
  };
  await until(areReady, SHOWN_MS, () => unready);
}

/** A check that fails, and what its reason says. */
export type Expected = Partial<Record<Service, readonly [check: string, reason: RegExp]>>;

/** Until each of these has said so. */
export async function untilUnready(expected: Expected, system: Pick<System, "instance">): Promise<void> {
  const missing = new Map(Object.entries(expected) as [Service, readonly [string, RegExp]][]);
  const last: Partial<Record<Service, Reasons | undefined>> = {};
  const haveSaid = async () => {
    await Promise.all(
      [...missing].map(async ([service, [check, reason]]) => {
        const reasons = await reasonsOf(service, system);
        last[service] = reasons;
        if (reason.test(reasons?.[check] ?? "")) missing.delete(service);
      }),
    );
    return missing.size === 0;
  };
  await until(haveSaid, SHOWN_MS, () => ({ missing: [...missing.keys()], last }));
}
