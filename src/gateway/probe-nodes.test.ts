import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import { createNode, type GatewayNode } from './node-table.ts';
import { type ProbeOptions, startProbes } from './probe-nodes.ts';
import type { UpstreamRequest } from './types.ts';

type Answer = readonly [status: number, body: string] | Error | 'hang';
const lost = (isSent: boolean): Error => new RuvLLMError('remote_failed', 'gone', { data: { isSent } });

/** Probes of nodes with these answers, 200 by default, and the log of what is asked and said. */
async function open(answers: Record<string, Answer>, checkNode: ProbeOptions['checkNode'] = null) {
  const clock = createManualClock();
  const nodes = Object.keys(answers).map((url, i) => createNode(String(i + 1), url));
  const asked: string[] = [];
  const logs: unknown[] = [];
  async function send(url: string, { signal, target, headers }: UpstreamRequest) {
    asked.push(url);
    expect([target, headers]).toEqual(['/health', { via: 'me' }]);
    const answer = answers[url]!;
    if (answer instanceof Error) throw answer;
    if (answer === 'hang') return new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))); // prettier-ignore
    const body = async function* () {
      yield new TextEncoder().encode(answer[1]);
    };
    return { status: answer[0], headers: {}, body: body() };
  }
  const logger = { log: (level: string, _: string, { node, health }: object & Record<string, unknown>) => void logs.push([level, node, health]) }; // prettier-ignore
  const probes = startProbes({ nodes, upstream: { send, close() {} }, clock, logger, intervalMs: 1000, via: 'me', checkNode }); // prettier-ignore
  await settle();
  const pass = async (ms: number): Promise<number> => {
    const before = asked.length;
    clock.advance(ms);
    await settle();
    return asked.length - before;
  };
  return { clock, nodes, node: nodes[0]!, asked, logs, answers, probes, pass };
}
const stateOf = ({ health, reason }: GatewayNode) => [health, reason];

test.each<[Answer, string, string | null]>([
  [[200, '{}'], 'up', null],
  [[503, 'shutting down'], 'draining', 'it is shutting down'],
  [[503, 'not ready'], 'loading', 'it is loading'],
  [[508, ''], 'refused', 'it is a gateway; a node is a process of ruvllm serve'],
  [[404, ''], 'refused', 'GET /health answered 404'],
  [[500, ''], 'refused', 'GET /health answered 500'],
  [[200, 'x'.repeat(5000)], 'up', null],
  [lost(false), 'down', 'gone'],
  [lost(true), 'down', 'gone'],
])('[GW13] a node that answers %o is %s', async (answer, health, reason) => {
  const { node, logs } = await open({ a: answer });
  expect(stateOf(node)).toEqual([health, reason]);
  expect(logs).toEqual([[health === 'up' ? 'info' : 'warn', '1', health]]);
});

test('[GW13] a node that is up is asked each interval, one that is down less and less often', async () => {
  const { pass, answers, logs } = await open({ a: [200, ''] });
  expect([await pass(999), await pass(1), await pass(999), await pass(1)]).toEqual([0, 1, 0, 1]);
  answers['a'] = lost(false);
  expect(await pass(1000)).toBe(1);
  for (const delayMs of [500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000]) {
    expect([await pass(delayMs - 1), await pass(1)]).toEqual([0, 1]);
  }
  answers['a'] = [503, 'not ready'];
  expect(await pass(10_000)).toBe(1);
  expect([await pass(249), await pass(1)]).toEqual([0, 1]);
  // A change is logged, an answer as before is not.
  expect(logs).toEqual([['info', '1', 'up'], ['warn', '1', 'down'], ['warn', '1', 'loading']]); // prettier-ignore
});

test('[GW13] one missing answer says nothing about a node that was up, a refused connection does', async () => {
  const { pass, answers, node } = await open({ a: [200, ''] });
  answers['a'] = 'hang';
  await pass(1000);
  expect([await pass(1999), node.health]).toEqual([0, 'up']);
  await pass(1);
  expect(node.health).toBe('up');
  answers['a'] = [200, ''];
  await pass(1000);
  answers['a'] = lost(true);
  await pass(1000);
  expect(node.health).toBe('up');
  await pass(1000);
  expect(node.health).toBe('down');
  answers['a'] = [200, ''];
  await pass(1000);
  answers['a'] = lost(false);
  await pass(1000);
  expect(node.health).toBe('down');
});

test('[FA5] a node that does not belong to the fleet is refused; one that does not say so in time is down', async () => {
  const refused = await open({ a: [200, ''] }, () => Promise.reject(new Error('another secret')));
  expect(stateOf(refused.node)).toEqual(['refused', 'another secret']);
  const checked: string[] = [];
  const accepted = await open({ a: [200, ''] }, async ({ url }) => void checked.push(url));
  expect([stateOf(accepted.node), checked]).toEqual([['up', null], ['a']]);
  const late = await open({ a: [200, ''] }, (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('late'))))); // prettier-ignore
  await late.pass(2000);
  expect(stateOf(late.node)).toEqual(['down', 'late']);
});

test('[GW13] those that are not up, are behind, joined or are in doubt are asked at once', async () => {
  const { probes, nodes, asked, answers, pass } = await open({ a: [200, ''], b: lost(false), c: [200, ''] });
  const said = async (ask: () => unknown): Promise<string> => {
    asked.length = 0;
    await ask();
    await settle();
    return asked.join('');
  };
  expect(await said(probes.askNow)).toBe('b');
  nodes[0]!.fleet = { version: '1', models: [], release: 7, numRequests: 0 };
  expect(await said(() => probes.askBehind(7))).toBe('c');
  expect(await said(() => probes.askBehind(8))).toBe('ac');
  const joined = createNode('4', 'd');
  answers['d'] = [200, ''];
  nodes.push(joined);
  expect([await said(() => probes.add(joined)), joined.health]).toEqual(['d', 'up']);
  answers['a'] = 'hang';
  expect(await said(() => probes.doubt(nodes[0]!, 'broke'))).toBe('a');
  expect(stateOf(nodes[0]!)).toEqual(['unknown', 'broke']);
  // It is asked once at a time; until it answers, it is not up.
  expect(await said(() => probes.doubt(nodes[0]!, 'again'))).toBe('');
  await pass(2000);
  expect(stateOf(nodes[0]!)).toEqual(['down', 'no answer within 2000 ms']);
  probes.doubt(nodes[1]!, 'broke');
  expect(stateOf(nodes[1]!)).toEqual(['down', 'gone']);
});

test('[GW13] a node that left is asked no more, also if it was just asked, and none is after the end', async () => {
  const { probes, nodes, clock, pass } = await open({ a: [200, ''], b: [200, ''] });
  const [left] = nodes.splice(0, 1);
  probes.remove(left!);
  expect([await pass(1000), clock.numTimers]).toEqual([1, 1]);
  const joined = createNode('3', 'a');
  nodes.push(joined);
  probes.add(joined);
  nodes.pop();
  await settle();
  expect(clock.numTimers).toBe(1);
  probes.doubt(nodes[0]!, 'broke');
  probes.stop();
  await settle();
  expect([clock.numTimers, await pass(60_000)]).toEqual([0, 0]);
});
