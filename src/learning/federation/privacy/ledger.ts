import { z } from 'zod';
import { RuvLLMError } from '../../../core/errors.ts';
import { count } from '../../../memory/schemas/primitives.ts';
import { epsilonOf, rhoFor } from './accounting.ts';

/** How much of a conversation bundles may reveal, over all pushes together. */
export interface PrivacyBudget {
  /** Bound over all bundles. */
  readonly epsilon: number;
  /** Default 1e-6, at most 1e-3. */
  readonly delta?: number;
  /** Bound of one bundle. Default 1, or `epsilon` if that is less. */
  readonly epsilonPerPush?: number;
}

const MIN_EPSILON = 0.01;
const MAX_EPSILON = 100;
const MIN_DELTA = 1e-12;
const MAX_DELTA = 1e-3;
const DEFAULT_DELTA = 1e-6;

const budget = z.strictObject({
  epsilon: z.number().min(MIN_EPSILON).max(MAX_EPSILON),
  delta: z.number().min(MIN_DELTA).max(MAX_DELTA),
  epsilonPerPush: z.number().min(MIN_EPSILON).max(MAX_EPSILON),
});

/** The budget of a tenant and its spent part. */
export const privacyLedger = z.strictObject({
  /** Null: bundles are not noised. */
  budget: budget.nullable(),
  /** Sum of ρ (zero-concentrated differential privacy) of all noised bundles. */
  rho: z.number().min(0),
  /** Sum of the ε of all noised bundles. */
  basicEpsilon: z.number().min(0),
  numPushes: count,
});
export type PrivacyLedger = z.infer<typeof privacyLedger>;
export const NEW_LEDGER: PrivacyLedger = { budget: null, rho: 0, basicEpsilon: 0, numPushes: 0 };

/** More than the errors of adding: the sum must not be below the true one. */
const SLACK = 1 + 1e-12;

export interface PrivacyStatus {
  readonly epsilon: number;
  readonly delta: number;
  readonly epsilonPerPush: number;
  /** ε of all noised bundles at δ, composed as ρ. */
  readonly spent: number;
  readonly left: number;
  /** ε by adding the ε of each bundle; its δ is that of one times the number of bundles. */
  readonly spentBasic: number;
  readonly numPushes: number;
  /** Bundles that were sent without noise: the bound does not hold for conversations in them. */
  readonly numPlain: number;
}

const refuse = (message: string, option: string): never => {
  throw new RuvLLMError('invalid_option', message, { data: { option } });
};

/** Fills in the defaults; throws for numbers that bound nothing. */
export function resolveBudget({
  epsilon,
  delta = DEFAULT_DELTA,
  epsilonPerPush = Math.min(1, epsilon),
}: PrivacyBudget) {
  if (!(epsilon >= MIN_EPSILON && epsilon <= MAX_EPSILON)) refuse(`epsilon must be from ${MIN_EPSILON} to ${MAX_EPSILON}, got ${epsilon}`, 'epsilon'); // prettier-ignore
  if (!(delta >= MIN_DELTA && delta <= MAX_DELTA)) refuse(`delta must be from ${MIN_DELTA} to ${MAX_DELTA}, got ${delta}`, 'delta'); // prettier-ignore
  if (!(epsilonPerPush >= MIN_EPSILON && epsilonPerPush <= epsilon)) refuse(`epsilonPerPush must be from ${MIN_EPSILON} to the ${epsilon} of all pushes, got ${epsilonPerPush}`, 'epsilonPerPush'); // prettier-ignore
  return { epsilon, delta, epsilonPerPush };
}

/** The ledger after a push of `rho`; throws if the budget is too small. */
export function charge(ledger: PrivacyLedger, rho: number): PrivacyLedger {
  const { epsilon, delta } = ledger.budget!;
  const after = { ...ledger, rho: (ledger.rho + rho) * SLACK, basicEpsilon: ledger.basicEpsilon + epsilonOf(rho, delta), numPushes: ledger.numPushes + 1 }; // prettier-ignore
  const total = epsilonOf(after.rho, delta);
  // Room for the bisection only: the first push may spend the whole budget.
  if (total <= epsilon * SLACK) return after;
  const spent = epsilonOf(ledger.rho, delta);
  throw new RuvLLMError('limit_exceeded', `the privacy budget is an epsilon of ${epsilon} at a delta of ${delta}; ${ledger.numPushes} bundles spent ${spent.toFixed(3)}, and one more makes ${total.toFixed(3)}. Nothing was sent; raise the budget with: ruvllm federate privacy`, { data: { epsilon, delta, spent, total, numPushes: ledger.numPushes } }); // prettier-ignore
}

/** ρ of one push. */
export const rhoPerPush = ({ budget: limits }: PrivacyLedger): number => rhoFor(limits!.epsilonPerPush, limits!.delta);

/** Null: bundles are not noised. */
export function privacyStatus(
  { budget: limits, rho, basicEpsilon, numPushes }: PrivacyLedger,
  numPlain: number,
): PrivacyStatus | null {
  if (limits === null) return null;
  const spent = epsilonOf(rho, limits.delta);
  return { ...limits, spent, left: Math.max(0, limits.epsilon - spent), spentBasic: basicEpsilon, numPushes, numPlain }; // prettier-ignore
}
