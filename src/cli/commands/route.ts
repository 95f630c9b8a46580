import { openNodeMemory } from '../../node/memory/open-memory.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { nameOption } from '../../runtime/name-option.ts';
import type { ExplainedRoute } from '../../runtime/routing/types.ts';
import type { CommandContext, CommandRunner } from '../command.ts';
import { API_KEY_FLAG, MEMORY_DESCRIPTION, URL_FLAG } from '../config/common-flags.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { checkServerFlags } from '../memory/client.ts';
import { askServer, readServer } from '../servers/ask-server.ts';
import { explainLock } from '../memory/explain-lock.ts';
import { memoryPlace } from '../memory/memory-place.ts';
import { oneLine } from '../memory/show.ts';
import { usageError } from '../usage-error.ts';
import { openServedRouting, readRouteFile } from './served-routing.ts';

export const flags: readonly Flag[] = [
  { ...URL_FLAG, description: `${URL_FLAG.description} and its candidates` },
  API_KEY_FLAG,
  ...defineFlags({
    '--route-config <file>': 'JSON file with the candidates (without --url)',
    '--memory <place>': `${MEMORY_DESCRIPTION} (without --url)`,
    '--tenant <name>': `tenant of the router; default ${DEFAULT_TENANT} (without --url)`,
  }),
];

/** Shows which candidate the router chooses for a prompt, and why. */
export const run: CommandRunner = async (context) => {
  const { output } = context;
  const isRemote = checkServerFlags(context, ['--route-config', '--memory', '--tenant']);
  const decision = isRemote ? await explainOnServer(context) : await explainLocally(context);
  output.document(decision);
  const { candidate, reason, confidence, policy, version, routingMs } = decision;
  output.lines(`${oneLine(candidate, 80)}  (${reason}, confidence ${confidence.toFixed(2)})`);
  output.lines(oneLine(decision.detail, 400));
  const source = version === 0 ? policy : `${policy}, version ${version} (policy version ${decision.policyVersion})`;
  output.lines(`decided by ${oneLine(source, 120)} in ${routingMs.toFixed(2)} ms`);
  // Absent from older servers.
  const { sampling } = decision as Partial<ExplainedRoute>;
  if (sampling !== undefined) {
    const { temperature, topP, source: origin, numSamples } = sampling;
    const from = origin === 'learned' ? `learned from ${numSamples} rated conversations` : origin;
    output.lines(`temperature ${temperature}, top-p ${topP} (${from}); context of ${decision.contextSize} tokens`);
  }
  const { inputs } = decision as Partial<ExplainedRoute>;
  if (inputs !== undefined) {
    const parts = [`${inputs.promptTokens} prompt tokens`, `load ${inputs.load.toFixed(2)}`];
    if (inputs.similarities.length > 0) parts.push(`${inputs.similarities.length} recalled texts`);
    if (inputs.isLocalOnly) parts.push('local candidates only');
    if (inputs.vector !== null) parts.push(`sentence vector of the ${inputs.vector}`);
    output.lines(`inputs: ${parts.join(', ')}`);
  }
  output.lines(
    `safe default below a confidence of ${decision.minConfidence.toFixed(2)}: ${oneLine(decision.safeDefault, 80)}\n`,
  );
  const number = (value: number | null): string => (value === null ? '–' : value.toFixed(3));
  const rows = decision.candidates.map(({ id, quality, score, cost, latencyMs, cachedTokens, isAble }, i) => [
    oneLine(id, 60),
    number(quality),
    cost === 0 ? '0' : cost.toPrecision(2),
    (latencyMs / 1000).toFixed(1),
    String(cachedTokens),
    number(score),
    decision.probs[i]!.toFixed(3),
    isAble ? '' : 'unavailable',
  ]);
  output.table(['CANDIDATE', 'QUALITY', 'COST', 'SECONDS', 'CACHED', 'SCORE', 'PROBABILITY', ''], rows);
  for (const { name, deviations } of decision.features) {
    output.lines(`  ${name}: ${deviations.toFixed(2)} standard deviations`);
  }
  for (const { similarity } of decision.neighbours) output.lines(`  similar rated request (${similarity.toFixed(2)})`);
  for (const { text, similarity, recommends } of decision.patterns) {
    output.lines(
      `  pattern (${similarity.toFixed(2)}) recommends ${oneLine(recommends ?? 'none', 60)}: ${oneLine(text, 80)}`,
    );
  }
};

async function explainOnServer({ io, values, args }: CommandContext): Promise<ExplainedRoute> {
  const server = readServer({ io, values });
  const url = new URL(`${server.base}/v1/route`);
  return (await askServer(server, { method: 'POST', url, body: { prompt: args[0] } })) as ExplainedRoute;
}

async function explainLocally(context: CommandContext): Promise<ExplainedRoute> {
  const { values, output, args } = context;
  const config = await readRouteFile(context);
  if (config === null) throw usageError('route requires --url or --route-config', '--route-config');
  const tenant = nameOption(values['--tenant'] ?? DEFAULT_TENANT, '--tenant');
  const place = memoryPlace(context) as string | undefined;
  const memory = await openNodeMemory({
    ...(place === undefined ? {} : { place }),
    modelPath: null,
    report: (message) => output.note(message),
  }).catch((error: unknown) => {
    throw explainLock(error);
  });
  try {
    const routing = (await openServedRouting(context, config, null, memory))!;
    const question = { turns: [args[0]!], embedded: null, similarities: [], isLocalOnly: false, load: 0 };
    return await routing.explain(tenant, question);
  } finally {
    await memory.close();
  }
}
