/**
 * The programs whose round is being made by some replica, and the way to cancel one wherever that is: a replica that hears
 * of a cancellation aborts its own rounds of that program.
 */
import { ServiceError } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";

const CHANNEL = "svc:ptc:cancelled";

export class RunningPrograms {
  readonly #redis: Redis;
  readonly #running = new Map<string, Set<AbortController>>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (channel: string, id: string) => {
      if (channel !== CHANNEL) return;
      for (const controller of this.#running.get(id) ?? []) {
        controller.abort(new ServiceError("execution_cancelled"));
      }
    });
    await subscriber.subscribe(CHANNEL);
  }

  /** Runs work of a program under a signal that its cancellation aborts. */
  async during<T>(id: string, work: (cancelled: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const controllers = this.#running.get(id) ?? new Set();
    this.#running.set(id, controllers.add(controller));
    try {
      return await work(controller.signal);
    } finally {
      controllers.delete(controller);
      if (controllers.size === 0) this.#running.delete(id);
    }
  }

  /** Tells every replica. */
  async cancel(id: string): Promise<void> {
    await storeCall(() => this.#redis.publish(CHANNEL, id));
  }
}
