import { pairedChange, type PairedChange } from './paired.ts';

/** Losses of the same held-out examples before and after an update. */
export interface ShadowResult {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

export interface GateRules {
  /** Fewer held-out examples decide nothing. Default 4. */
  readonly minExamples: number;
  /** How much the mean loss of other answers may rise. Default 0.05 nats per token. */
  readonly maxRiseElsewhere: number;
  /** How much the mean held-out loss must fall. Default 0. */
  readonly minFall: number;
  /** How much the loss of one example may rise. Default 1 nat per token. */
  readonly maxRiseOfOne: number;
}

export const GATE_RULES: GateRules = { minExamples: 4, minFall: 0, maxRiseElsewhere: 0.05, maxRiseOfOne: 1 };

export interface GateDecision {
  readonly isAccepted: boolean;
  readonly reason: string;
  readonly metrics: Readonly<Record<string, number>>;
}

/** Accepts an update only if it improves held-out examples significantly and does not harm other answers. */
export function decidePromotion(
  wanted: ShadowResult,
  elsewhere: ShadowResult,
  rules: GateRules = GATE_RULES,
): GateDecision {
  const change = pairedChange(wanted.before, wanted.after);
  const other = pairedChange(elsewhere.before, elsewhere.after);
  const metrics = { ...named('held_out', change, wanted), ...named('elsewhere', other, elsewhere) };
  const refuse = (reason: string): GateDecision => ({ isAccepted: false, reason, metrics });
  const all = [...wanted.before, ...wanted.after, ...elsewhere.before, ...elsewhere.after];
  if (!all.every(Number.isFinite)) return refuse('a loss is not a number: the update would break the model');
  if (change.count < rules.minExamples) {
    return refuse(`${change.count} held-out examples are too few to decide, ${rules.minExamples} are needed`);
  }
  if (!(change.high < 0)) {
    return refuse(`the held-out loss changes by ${show(change)}: that it falls is not sure`);
  }
  if (-change.mean < rules.minFall) {
    return refuse(`the held-out loss changes by ${show(change)}: it must fall by ${rules.minFall}`);
  }
  if (other.mean > rules.maxRiseElsewhere) {
    return refuse(`the loss elsewhere rises by ${show(other)}, more than ${rules.maxRiseElsewhere}`);
  }
  const worst = Math.max(
    ...[wanted, elsewhere].flatMap(({ before, after }) => after.map((loss, i) => loss - before[i]!)),
  );
  if (worst > rules.maxRiseOfOne) {
    return refuse(`the loss of one example rises by ${worst.toFixed(3)}, more than ${rules.maxRiseOfOne}`);
  }
  const beside = other.count === 0 ? 'nothing else to compare' : `elsewhere ${show(other)}`;
  return { isAccepted: true, reason: `the held-out loss falls: ${show(change)}; ${beside}`, metrics };
}

const show = ({ mean, low, high, count }: PairedChange): string =>
  `${mean.toFixed(4)} (95 % ${low.toFixed(4)} to ${high.toFixed(4)}, ${count} examples)`;

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function named(prefix: string, { count, mean, low, high }: PairedChange, shadow: ShadowResult): Record<string, number> {
  const [before, after] = [meanOf(shadow.before), meanOf(shadow.after)];
  const finite = Object.entries({ count, mean, low, high, before, after }).filter(([, value]) =>
    Number.isFinite(value),
  );
  return Object.fromEntries(finite.map(([key, value]) => [`${prefix}_${key}`, value]));
}
