// Hugging Face's client, pointed at the server with `endpointUrl`.
import { InferenceClient } from '@huggingface/inference';
import { expect, test } from 'vitest';

test('loads', () => {
  expect(new InferenceClient()).toBeDefined();
});
