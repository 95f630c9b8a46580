import { messageOf, RuvLLMError } from '../../core/errors.ts';
import { createBudget } from './budget.ts';
import { createGlobals } from './globals.ts';
import type { TemplateClock } from './globals.ts';
import type { TemplateLimits } from './limits.ts';
import { createScope } from './scope.ts';
import { renderToText } from './statements.ts';
import type { ProgramNode } from './syntax.ts';
import { toValue } from './values.ts';
import type { MapText, Value } from './values.ts';

export interface RenderJob {
  readonly program: ProgramNode;
  readonly limits: TemplateLimits;
  readonly clock: TemplateClock;
  readonly guard: string;
  /** Variables of the template: `trusted` are passed unchanged, the strings of `untrusted` through `mapText`. */
  readonly trusted: Readonly<Record<string, unknown>>;
  readonly untrusted: Readonly<Record<string, unknown>>;
  readonly mapText: MapText;
}

/** Renders within the limits; every failure is a `template_error`. */
export function renderTemplate(job: RenderJob): string {
  const budget = createBudget(job.limits, () => job.clock.now());
  const context = { budget, guard: job.guard };
  try {
    const names: [string, Value][] = [];
    for (const [name, value] of Object.entries(job.untrusted)) names.push([name, toValue(budget, value, job.mapText)]);
    for (const [name, value] of Object.entries(job.trusted)) names.push([name, toValue(budget, value, (text) => text)]);
    const globals = createGlobals(context, job.clock);
    return renderToText(context, job.program.body, createScope(createScope(globals, names)));
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    // A stack overflow (RangeError) is caught here if the host's stack was nearly full before the render.
    const reason = messageOf(error);
    throw new RuvLLMError('template_error', `chat template failed: ${reason}`, { cause: error });
  }
}
