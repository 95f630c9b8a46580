import { RuvLLMError } from '../../core/errors.ts';
import type { Field } from './fields.ts';

/** A 400 that names the field and the feature. */
export function unsupported(path: string, feature: string): Error {
  return new RuvLLMError('unsupported', `'${path}': ${feature} is not supported by this version`, {
    data: { option: path },
  });
}

/** A field of an unsupported feature; null, false and an empty list request nothing and are accepted. */
export function unsupportedField(feature: string): Field<never> {
  return {
    schema: { type: 'null', description: `${feature} is not supported` },
    read(value, path) {
      if (value === false || (Array.isArray(value) && value.length === 0)) return null as never;
      throw unsupported(path, feature);
    },
  };
}
