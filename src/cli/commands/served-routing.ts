import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import type { RouteConfig } from '../../runtime/routing/route-config.ts';
import type { Routing } from '../../runtime/routing/types.ts';
import type { ModelHost } from '../../runtime/requests/model-host.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';
import { requireRegularFile } from '../../platform/node/files/regular-file.ts';

/** Thirty-two candidates take a few kilobytes. */
const MAX_BYTES = 1 << 20;

/** The file of `--route-config`; null without the flag. */
export async function readRouteFile({
  io,
  values,
}: Pick<CommandContext, 'io' | 'values'>): Promise<RouteConfig | null> {
  const path = values['--route-config'] as string | undefined;
  if (path === undefined) return null;
  let config: unknown;
  try {
    const size = requireRegularFile(path);
    if (size > MAX_BYTES) throw usageError(`${path} has ${size} bytes; the limit is ${MAX_BYTES}`, '--route-config'); // prettier-ignore
    config = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    // The parser's message may quote a secret from the file.
    const reason = error instanceof SyntaxError ? 'not valid JSON' : ((error as NodeJS.ErrnoException).code ?? 'io');
    throw usageError(`cannot read ${path}: ${reason}`, '--route-config');
  }
  const { readRouteConfig } = await import('../../runtime/routing/route-config.ts');
  return readRouteConfig(config, io.environment);
}

/** Opens routing for a server; rejects candidates whose model is not served. */
export async function openServedRouting(
  { output }: Pick<CommandContext, 'output'>,
  config: RouteConfig | null,
  models: Pick<ModelHost, 'find'> | null,
  memory: Memory | null,
): Promise<Routing | null> {
  if (config === null) return null;
  for (const candidate of config.candidates) {
    if (candidate.kind === 'remote' || models === null || models.find(candidate.model) !== null) continue;
    throw usageError(`candidate "${candidate.id}" requires model ${JSON.stringify(candidate.model)}, which is not served`, '--route-config'); // prettier-ignore
  }
  if (models !== null && models.find(config.alias) !== null) {
    throw usageError(`the routing alias "${config.alias}" is already the name of a model`, '--route-config');
  }
  const { createRouting } = await import('../../runtime/routing/routing.ts');
  return createRouting({
    config,
    memory,
    now: () => performance.now(),
    seed: randomInt(2 ** 31),
    report: (message) => output.note(`routing: ${message}`),
  });
}
