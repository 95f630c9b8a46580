// A reporter of vitest for scripts/test.mjs. Vitest's own JSON has neither errors outside of tests (a hook that fails, a worker that dies)
// nor the time of hooks and imports.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestModule, Vitest } from 'vitest/node';

export interface FailureReport {
  readonly name: string;
  readonly error: string;
  /** False for an import, or a hook around several tests. */
  readonly isTest: boolean;
}

export interface FileReport {
  readonly file: string;
  /** With imports and hooks. */
  readonly ms: number;
  /** With the processes that it started and that have ended. */
  readonly processorMs: number;
  readonly passed: number;
  readonly skipped: number;
  readonly failures: readonly FailureReport[];
}

export interface TestReport {
  readonly files: readonly FileReport[];
  /** Messages of errors that belong to no file. */
  readonly unhandled: readonly string[];
}

type Errors = readonly { readonly message?: string }[] | undefined;
const firstLine = (errors: Errors): string => (errors?.[0]?.message ?? 'it failed').split('\n')[0]!;

function describeModule(module: TestModule, root: string): FileReport {
  const inState = (state: 'passed' | 'failed' | 'skipped') => [...module.children.allTests(state)];
  const failed = inState('failed').map((test) => ({
    name: test.fullName,
    error: firstLine(test.result().errors),
    isTest: true,
  }));
  const around = [module, ...module.children.allSuites()]
    .filter((part) => part.errors().length > 0)
    .map((part) => ({
      name: part.type === 'suite' ? part.fullName : 'the file',
      error: firstLine(part.errors()),
      isTest: false,
    }));
  const { collectDuration, setupDuration, duration } = module.diagnostic();
  return {
    file: relative(root, module.moduleId).replaceAll('\\', '/'),
    ms: Math.round(collectDuration + setupDuration + duration),
    processorMs: (module.meta() as { processorMs?: number }).processorMs ?? 0,
    passed: inState('passed').length,
    skipped: inState('skipped').length,
    failures: [...failed, ...around],
  };
}

export default class TestReporter implements Reporter {
  #root = '';

  onInit(vitest: Vitest): void {
    this.#root = vitest.config.root;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly { readonly message?: string }[]): void {
    const path = process.env['RUVLLM_TEST_REPORT'];
    if (path === undefined) return;
    const files = modules.map((module) => describeModule(module, this.#root));
    const report: TestReport = { files, unhandled: unhandled.map((error) => firstLine([error])) };
    writeFileSync(path, JSON.stringify(report));
  }
}
