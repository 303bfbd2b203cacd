import { newSecret } from "@svc/test-kit/credentials/secrets";
import { describe, expect, test } from "vitest";
import { limitsOfPlan, loadConfig } from "../../src/index.ts";

const load = (plans: string) =>
  loadConfig("api", { SVC_INTERNAL_SERVICE_TOKEN: newSecret(), SVC_PLAN_LIMITS: plans }).SVC_PLAN_LIMITS;

describe("SVC_PLAN_LIMITS", () => {
  test("takes sizes as numbers and as texts", () => {
    expect(load('{"pro":{"run_memory_limit":"256m","max_file_size":1},"default":{}}')).toEqual({
      pro: { run_memory_limit: 2 ** 28, max_file_size: 1 },
      default: {},
    });
  });

  test.each([
    ['{"pro":{"max_file_sise":1}}', "pro", "max_file_sise is not one of run_memory_limit, max_file_size"],
    ['{"pro":{"max_file_size":0}}', "pro.max_file_size", "must be at least 1"],
    ['{"pro":{"max_file_size":-1}}', "pro.max_file_size", "must be"],
    ['{"pro":{"max_file_size":1.5}}', "pro.max_file_size", "must be"],
    ['{"pro":{"max_file_size":1e30}}', "pro.max_file_size", "must be"],
    ['{"pro":{"max_file_size":"1x"}}', "pro.max_file_size", "must be"],
    ['{"pro":{"max_file_size":null}}', "pro.max_file_size", ""],
    ['{"pro":{"max_file_size":true}}', "pro.max_file_size", ""],
    ['{"pro":{"max_file_size":[1]}}', "pro.max_file_size", ""],
    ['{"pro":{"run_memory_limit":"15m"}}', "pro.run_memory_limit", "must be at least 16777216"],
    ['{"pro":1}', "pro", ""],
    ['{"pro":null}', "pro", ""],
    ['{"ok":{},"pro":[]}', "pro", ""],
  ])("%s stops the process; the message names the place", (plans, place, why) => {
    expect(() => load(plans)).toThrow(`SVC_PLAN_LIMITS is wrong at ${place}: `);
    expect(() => load(plans)).toThrow(why);
  });
});

describe("the limits of a plan", () => {
  const plans = load('{"pro":{"max_file_size":5},"default":{"max_file_size":3,"run_memory_limit":"64m"}}');

  test("come from the plan alone, when it is listed", () => {
    expect(limitsOfPlan(plans, "pro")).toEqual({ max_file_size: 5 });
  });

  test.each([undefined, "", "other", "constructor", "__proto__", "toString"])(
    "come from default for %j",
    (plan) => {
      expect(limitsOfPlan(plans, plan)).toBe(plans.default);
    },
  );

  test.each([undefined, "default", "constructor", "__proto__"])(
    "are none where nothing is set, for %j",
    (plan) => {
      expect(limitsOfPlan(load('{"pro":{}}'), plan)).toEqual({});
    },
  );
});
