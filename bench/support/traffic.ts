// Synthetic traffic for the prefix cache, as the page ids of each prompt: pages with the same id have the same tokens before
// and in them.
import { createRandom } from '../../src/core/random.ts';

export type Traffic = readonly (readonly number[])[];

interface TrafficOptions {
  readonly seed: number;
  readonly numRequests?: number;
}

const REQUESTS = 4000;

function createPages(seed: number) {
  const { next: random } = createRandom(seed);
  let nextId = 1;
  const integer = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1));
  return { random, integer, create: (count: number): number[] => Array.from({ length: count }, () => nextId++) };
}

/** Draws 0 to count-1, number i with a weight of (i + 1) ** -exponent. */
function zipf(count: number, exponent: number, random: () => number): () => number {
  const sums: number[] = [];
  for (let i = 1; i <= count; i++) sums.push((sums.at(-1) ?? 0) + i ** -exponent);
  return () => {
    const at = random() * sums.at(-1)!;
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle]! < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/** Users who continue their conversation or start a new one after one of the system prompts. */
export function chats(
  options: TrafficOptions & { numUsers: number; numSystems: number; systemPages: number; stop: number; skew: number },
): Traffic {
  // prettier-ignore
  const { random, integer, create } = createPages(options.seed);
  const systems = Array.from({ length: options.numSystems }, () => create(options.systemPages));
  const user = zipf(options.numUsers, options.skew, random);
  const open = new Map<number, readonly number[]>();
  return Array.from({ length: options.numRequests ?? REQUESTS }, () => {
    const who = user();
    const before = random() < options.stop ? undefined : open.get(who);
    const prompt = [...(before ?? systems[integer(0, systems.length - 1)]!), ...create(integer(2, 8))];
    open.set(who, prompt);
    return prompt;
  });
}

/** Questions after one or two documents; `drift` documents per request become popular or forgotten. */
export function documents(
  options: TrafficOptions & { numDocuments: number; drift: number; isPaired: boolean },
): Traffic {
  const { random, integer, create } = createPages(options.seed);
  const system = create(8);
  const all = Array.from({ length: options.numDocuments }, () => create(integer(5, 40)));
  const popular = zipf(all.length, 0.9, random);
  const seconds = new Map<string, number[]>();
  return Array.from({ length: options.numRequests ?? REQUESTS }, (_, i) => {
    const draw = (): number => (popular() + Math.floor(options.drift * i)) % all.length;
    const first = draw();
    const pages = [...system, ...all[first]!];
    if (options.isPaired && random() < 0.5) {
      const second = draw();
      const key = `${first},${second}`;
      if (!seconds.has(key)) seconds.set(key, create(all[second]!.length));
      pages.push(...seconds.get(key)!);
    }
    return [...pages, ...create(integer(1, 3))];
  });
}

/** Agents with long instructions that take several steps, many at a time; a share of the requests is never seen again. */
export function agents(
  options: TrafficOptions & { numAgents: number; numParallel: number; singleShare: number },
): Traffic {
  const { random, integer, create } = createPages(options.seed);
  const systems = Array.from({ length: options.numAgents }, () => create(40));
  const open: { prompt: readonly number[]; numLeft: number }[] = [];
  return Array.from({ length: options.numRequests ?? REQUESTS }, () => {
    if (random() < options.singleShare) return create(integer(10, 40));
    const slot = integer(0, options.numParallel - 1);
    let task = open[slot];
    if (task === undefined || task.numLeft <= 0) {
      const system = systems[Math.floor(systems.length * random() ** 2)]!;
      task = { prompt: system, numLeft: 1 + Math.floor(-Math.log(1 - random()) * 12) };
    }
    open[slot] = { prompt: [...task.prompt, ...create(integer(1, 6))], numLeft: task.numLeft - 1 };
    return open[slot].prompt;
  });
}

/** Several kinds of traffic at once. */
export function mixed(seed: number, parts: readonly Traffic[]): Traffic {
  const { next: random } = createRandom(seed);
  const queues = parts.map((part, i) => part.map((prompt) => prompt.map((id) => id * parts.length + i)));
  const all: number[][] = [];
  for (let open = queues; open.length > 0; open = queues.filter(({ length }) => length > 0)) {
    all.push(open[Math.floor(random() * open.length)]!.shift()!);
  }
  return all;
}

/** Traffic on which the eviction order was chosen, and traffic that had no part in the choice. */
export const TRAFFIC: readonly {
  readonly name: string;
  readonly isHeldOut: boolean;
  readonly create: () => Traffic;
}[] = [
  { name: 'few users', isHeldOut: false, create: () => chats({ seed: 1, numUsers: 200, numSystems: 5, systemPages: 10, stop: 0.15, skew: 0.8 }) }, // prettier-ignore
  { name: 'many users', isHeldOut: false, create: () => chats({ seed: 2, numUsers: 1000, numSystems: 30, systemPages: 20, stop: 0.3, skew: 0.5 }) }, // prettier-ignore
  { name: 'documents', isHeldOut: false, create: () => documents({ seed: 3, numDocuments: 600, drift: 0, isPaired: true }) }, // prettier-ignore
  { name: 'changing documents', isHeldOut: false, create: () => documents({ seed: 4, numDocuments: 2000, drift: 0.5, isPaired: false }) }, // prettier-ignore
  {
    name: 'agents',
    isHeldOut: false,
    create: () => agents({ seed: 5, numAgents: 12, numParallel: 20, singleShare: 0 }),
  },
  { name: 'agents, mostly singles', isHeldOut: false, create: () => agents({ seed: 6, numAgents: 6, numParallel: 10, singleShare: 0.6 }) }, // prettier-ignore
  {
    name: 'held out: mix',
    isHeldOut: true,
    create: () =>
      mixed(21, [
        chats({ seed: 22, numRequests: 2000, numUsers: 60, numSystems: 3, systemPages: 30, stop: 0.05, skew: 1 }),
        documents({ seed: 23, numRequests: 1000, numDocuments: 300, drift: 0.1, isPaired: true }),
        agents({ seed: 24, numRequests: 2000, numAgents: 30, numParallel: 40, singleShare: 0.2 }),
      ]),
  },
  { name: 'held out: chats', isHeldOut: true, create: () => chats({ seed: 25, numUsers: 400, numSystems: 100, systemPages: 5, stop: 0.5, skew: 1.1 }) }, // prettier-ignore
  { name: 'held out: documents', isHeldOut: true, create: () => documents({ seed: 26, numDocuments: 100, drift: 0.02, isPaired: true }) }, // prettier-ignore
];
