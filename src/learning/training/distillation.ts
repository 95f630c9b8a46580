import { RuvLLMError } from '../../core/errors.ts';
import { createFrozenStates } from '../lora-training/frozen-states.ts';
import { type DivergenceKind, divergenceObjective, recordDistributions } from '../lora-training/token-objective.ts';
import type { Trainable, TrainingExample, TrainingModel } from '../lora-training/types.ts';

/** One answer behind two prompts. */
export interface DistillItem {
  /** As the model will be asked. */
  readonly student: TrainingExample;
  /** The same answer after a prompt that has the correction. */
  readonly teacher: TrainingExample;
}

/** Distributions of an answer: 512 tokens of a vocabulary of 128 000. */
const MAX_DISTRIBUTION_BYTES = 256 << 20;
/** Distributions that stay for later epochs: 190 answers of 11 tokens with a vocabulary of 32 000. */
const MAX_KEPT_BYTES = 256 << 20;

const answerOf = ({ tokenIds, numPromptTokens }: TrainingExample): number[] =>
  Array.from(tokenIds).slice(numPromptTokens);

/**
 * Self-distillation: the unchanged model that has seen the correction teaches the one that has not, token by token, by the KL divergence
 * of their distributions.
 */
export function createDistillation(model: TrainingModel, kind: DivergenceKind): Trainable<DistillItem> {
  const { vocabSize } = model.shape;
  // The teacher is the model of the file: one that learns from itself would drift. So its distributions depend on the tokens alone.
  const known = createFrozenStates(MAX_KEPT_BYTES);
  async function distributionsOf(teacher: TrainingExample, size: number): Promise<Float32Array> {
    const kept = known.find(teacher.tokenIds);
    if (kept?.length === size) return kept;
    const distributions = new Float32Array(size);
    await model.loss(null, teacher, { objective: recordDistributions(distributions, vocabSize) });
    known.keep(teacher.tokenIds, distributions);
    return distributions;
  }

  return {
    layout: model.layout,
    check({ student, teacher }) {
      model.check(student);
      model.check(teacher);
      const [answer, other] = [answerOf(student), answerOf(teacher)];
      if (answer.length !== other.length || answer.some((id, i) => id !== other[i])) {
        throw new RuvLLMError(
          'invalid_option',
          `the teacher's answer of ${other.length} tokens is not the student's of ${answer.length}`,
          { data: { numTeacherTokens: other.length, numStudentTokens: answer.length } },
        );
      }
      const sizeBytes = answer.length * vocabSize * 4;
      if (sizeBytes > MAX_DISTRIBUTION_BYTES) {
        throw new RuvLLMError(
          'out_of_memory',
          `the distributions of ${answer.length} tokens need ${sizeBytes} bytes, the limit is ${MAX_DISTRIBUTION_BYTES}`,
          { data: { sizeBytes, limitBytes: MAX_DISTRIBUTION_BYTES } },
        );
      }
    },
    async addGradient(parameters, { student, teacher }, gradient) {
      const numTokens = teacher.tokenIds.length - teacher.numPromptTokens;
      const distributions = await distributionsOf(teacher, numTokens * vocabSize);
      const objective = divergenceObjective(distributions, vocabSize, kind, 1 / numTokens);
      return model.addGradient(parameters, student, gradient, { objective });
    },
  };
}
