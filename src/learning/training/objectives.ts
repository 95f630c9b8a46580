import { createDistillation, type DistillItem } from './distillation.ts';
import type { DivergenceKind } from '../lora-training/token-objective.ts';
import type { Trainable, TrainingExample, TrainingModel } from '../lora-training/types.ts';
import { createKto, createPreference, type KtoItem, type PreferencePair } from './preference.ts';
import { createPolicyGradient, type PolicyItem } from './policy-gradient.ts';

/** A training method as plain data, which crosses to the learning thread. */
export type ObjectiveSpec =
  | { readonly kind: 'sft' }
  | { readonly kind: 'distill'; readonly divergence: DivergenceKind }
  | { readonly kind: 'dpo'; readonly beta: number }
  | { readonly kind: 'kto'; readonly beta: number }
  | { readonly kind: 'grpo'; readonly clip: number; readonly klWeight: number };

/** The unit of data of each method. */
export interface ObjectiveItems {
  readonly sft: TrainingExample;
  readonly distill: DistillItem;
  readonly dpo: PreferencePair;
  readonly kto: KtoItem;
  readonly grpo: PolicyItem;
}
export type ObjectiveItem = ObjectiveItems[keyof ObjectiveItems];

/** The loss of a method on a model. */
export function createObjective(model: TrainingModel, spec: ObjectiveSpec): Trainable<ObjectiveItem> {
  // Each method gets its own items: the caller of `train` pairs them with the spec.
  const any = <Item>(trainable: Trainable<Item>): Trainable<ObjectiveItem> => trainable as Trainable<never>;
  switch (spec.kind) {
    case 'sft':
      return any(model);
    case 'distill':
      return any(createDistillation(model, spec.divergence));
    case 'dpo':
      return any(createPreference(model, spec.beta));
    case 'kto':
      return any(createKto(model, spec.beta));
    case 'grpo':
      return any(createPolicyGradient(model, spec));
  }
}
