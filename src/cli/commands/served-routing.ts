import { randomInt } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import { readRouteConfig, type RouteConfig } from '../../runtime/routing/route-config.ts';
import { createRouting } from '../../runtime/routing/routing.ts';
import type { Routing } from '../../runtime/routing/types.ts';
import type { ModelHost } from '../../runtime/requests/model-host.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';

/** Thirty-two candidates take a few kilobytes. */
const MAX_BYTES = 1 << 20;

/** What `--route-config` names; null where it was not typed. */
export function readRouteFile({ io, values }: Pick<CommandContext, 'io' | 'values'>): RouteConfig | null {
  const path = values['--route-config'] as string | undefined;
  if (path === undefined) return null;
  let given: unknown;
  try {
    const { size } = statSync(path);
    if (size > MAX_BYTES) throw usageError(`${path} has ${size} bytes, at most ${MAX_BYTES} are read`, '--route-config'); // prettier-ignore
    given = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    // What a parser quotes of the file may be anything, a key that somebody wrote into it, too.
    const reason = error instanceof SyntaxError ? 'it is not JSON' : ((error as NodeJS.ErrnoException).code ?? 'io');
    throw usageError(`${path} cannot be read: ${reason}`, '--route-config');
  }
  return readRouteConfig(given, io.environment);
}

/** Chooses for a server; a candidate whose model is not served is found out now. */
export function openServedRouting(
  { output }: Pick<CommandContext, 'output'>,
  config: RouteConfig | null,
  models: Pick<ModelHost, 'find'> | null,
  memory: Memory | null,
): Routing | null {
  if (config === null) return null;
  for (const one of config.candidates) {
    if (one.kind === 'remote' || models === null || models.find(one.model) !== null) continue;
    throw usageError(`the candidate "${one.id}" needs the model ${JSON.stringify(one.model)}, which is not served`, '--route-config'); // prettier-ignore
  }
  if (models !== null && models.find(config.alias) !== null) {
    throw usageError(`"${config.alias}" is the name of a model, and cannot choose among them`, '--route-config');
  }
  return createRouting({
    config,
    memory,
    now: () => performance.now(),
    seed: randomInt(2 ** 31),
    report: (message) => output.note(`routing: ${message}`),
  });
}
