import { openNodeMemory } from '../../platform/node/memory/open-memory.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { nameOption } from '../../runtime/name-option.ts';
import type { ExplainedRoute } from '../../runtime/routing/types.ts';
import type { CommandContext, CommandRunner } from '../command.ts';
import type { Flag } from '../flags.ts';
import { askServer, readServer } from '../memory/http-client.ts';
import { explainLock } from '../memory/local-client.ts';
import { memoryPlace } from '../memory/memory-place.ts';
import { oneLine } from '../memory/show.ts';
import { usageError } from '../usage-error.ts';
import { openServedRouting, readRouteFile } from './served-routing.ts';

export const ROUTE_FLAGS: readonly Flag[] = [
  { name: '--url', value: 'url', description: 'ask the running server there, which knows its candidates' },
  { name: '--api-key', value: 'key', description: 'the key for that server (RUVLLM_API_KEY)' },
  { name: '--route-config', value: 'file', description: 'the candidates, where no server is asked' },
  { name: '--memory', value: 'place', description: 'where the router lies, where no server is asked' },
  { name: '--tenant', value: 'name', description: `whose router; default ${DEFAULT_TENANT}; not with --url` },
];

/** Shows who would answer a prompt, and why. */
export const route: CommandRunner = async (context) => {
  const { output, values } = context;
  const told = values['--url'] === undefined ? await askHere(context) : await askThere(context);
  output.document(told);
  output.lines(`${oneLine(told.candidate, 80)}  (${told.reason}, confidence ${told.confidence.toFixed(2)})`);
  output.lines(oneLine(told.detail, 400));
  const by = told.version === 0 ? told.policy : `${told.policy}, version ${told.version}`;
  output.lines(`by ${oneLine(by, 120)}, in ${told.routingMs.toFixed(2)} ms`);
  output.lines(
    `below a confidence of ${told.minConfidence.toFixed(2)} it is ${oneLine(told.safeDefault, 80)}, the safe default\n`,
  );
  const number = (value: number | null): string => (value === null ? '–' : value.toFixed(3));
  const rows = told.candidates.map(({ id, quality, score, cost, latencyMs, isAble }, i) => [
    oneLine(id, 60),
    number(quality),
    cost === 0 ? '0' : cost.toPrecision(2),
    (latencyMs / 1000).toFixed(1),
    number(score),
    told.probs[i]!.toFixed(3),
    isAble ? '' : 'cannot answer this now',
  ]);
  output.table(['CANDIDATE', 'QUALITY', 'COST', 'SECONDS', 'SCORE', 'PROBABILITY', ''], rows);
  for (const { name, deviations } of told.features) output.lines(`  ${name}: ${deviations.toFixed(2)} deviations`);
  for (const { similarity } of told.neighbours) output.lines(`  a rated request, ${similarity.toFixed(2)} alike`);
  for (const { text, similarity, recommends } of told.patterns) {
    output.lines(
      `  pattern (${similarity.toFixed(2)}) for ${oneLine(recommends ?? 'nobody', 60)}: ${oneLine(text, 80)}`,
    );
  }
};

async function askThere({ io, values, args }: CommandContext): Promise<ExplainedRoute> {
  for (const name of ['--route-config', '--memory', '--tenant']) {
    if (values[name] !== undefined) throw usageError(`${name} is not for --url`, name);
  }
  const server = readServer({ io, values });
  const url = new URL(`${server.base}/v1/route`);
  return (await askServer(server, { method: 'POST', url, body: { prompt: args[0] } })) as ExplainedRoute;
}

async function askHere(context: CommandContext): Promise<ExplainedRoute> {
  const { values, output, args } = context;
  if (values['--api-key'] !== undefined) throw usageError('--api-key needs --url', '--api-key');
  const config = readRouteFile(context);
  if (config === null) throw usageError('route needs --url, or the candidates in --route-config', '--route-config');
  const tenant = nameOption(values['--tenant'] ?? DEFAULT_TENANT, '--tenant');
  const place = memoryPlace(context) as string | undefined;
  const memory = await openNodeMemory({
    ...(place === undefined ? {} : { place }),
    report: (message) => output.note(message),
  }).catch((error: unknown) => {
    throw explainLock(error, context);
  });
  try {
    const routing = openServedRouting(context, config, null, memory)!;
    const question = { turns: [args[0]!], embedded: null, similarities: [], isLocalOnly: false, load: 0 };
    return await routing.explain(tenant, question);
  } finally {
    await memory.close();
  }
}
