import type { GenerateOptions } from '../../runtime/generate-options.ts';
import { MAX_RETRIES } from '../../runtime/reflection/options.ts';
import {
  booleanField,
  type Field,
  integerField,
  isObject,
  invalid,
  numberField,
  readFields,
  schemaOf,
} from './fields.ts';

const SETTINGS = {
  max_retries: integerField(1, MAX_RETRIES),
  min_gain: numberField(0, 1),
  min_confidence: numberField(0, 1),
};

/** Whether an answer that cannot be used is retried with its error: a boolean, or settings. */
const reflectionField: Field<NonNullable<GenerateOptions['reflection']>> = {
  schema: { oneOf: [booleanField.schema, schemaOf(SETTINGS)], description: 'retries answers that cannot be used' },
  read(value, path) {
    if (typeof value === 'boolean') return value;
    if (!isObject(value)) throw invalid(path, 'a boolean or an object', value);
    const { max_retries: maxRetries, min_gain: minGain, min_confidence: minConfidence } = readFields(value, SETTINGS, { path }); // prettier-ignore
    return {
      ...(maxRetries === null ? {} : { maxRetries }),
      ...(minGain === null ? {} : { minGain }),
      ...(minConfidence === null ? {} : { minConfidence }),
    };
  },
};

/** The field of every format with messages; not in the APIs of others. */
export const REFLECTION_FIELDS = { reflection: reflectionField };

/** The library's option for the field. */
export const toReflection = ({
  reflection,
}: {
  readonly reflection: GenerateOptions['reflection'] | null;
}): Pick<GenerateOptions, 'reflection'> => (reflection == null ? {} : { reflection });
