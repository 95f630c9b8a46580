import { expect, test } from 'vitest';
import { hashHex, signRequest } from './sigv4.ts';

/** The examples of AWS, "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)". */
const KEYS = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  sessionToken: null,
  region: 'us-east-1',
};
const TIME = new Date('2013-05-24T00:00:00Z');
const HOST = 'https://examplebucket.s3.amazonaws.com';

const EXAMPLES = [
  {
    name: 'GET of an object',
    request: { method: 'GET', url: '/test.txt', headers: { range: 'bytes=0-9' }, body: '' },
    signedHeaders: 'host;range;x-amz-content-sha256;x-amz-date',
    signature: 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  },
  {
    name: 'PUT of an object whose name needs escapes',
    request: {
      method: 'PUT',
      url: '/test$file.text',
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      body: 'Welcome to Amazon S3.',
    },
    signedHeaders: 'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
    signature: '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  },
  {
    name: 'GET with a parameter without a value',
    request: { method: 'GET', url: '/?lifecycle', headers: {}, body: '' },
    signedHeaders: 'host;x-amz-content-sha256;x-amz-date',
    signature: 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  },
  {
    name: 'list of objects',
    request: { method: 'GET', url: '/?prefix=J&max-keys=2', headers: {}, body: '' },
    signedHeaders: 'host;x-amz-content-sha256;x-amz-date',
    signature: '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  },
];

for (const { name, request, signedHeaders, signature } of EXAMPLES) {
  test(`signs the example of AWS: ${name}`, () => {
    const { method, headers, body } = request;
    const url = new URL(HOST + request.url);
    const signed = signRequest({ method, url, headers, bodyHash: hashHex(body) }, KEYS, TIME);
    expect(signed['authorization']).toBe(
      `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=${signedHeaders}, Signature=${signature}`,
    );
  });
}

test('temporary credentials send and sign their token', () => {
  const keys = { ...KEYS, sessionToken: 'token' };
  const signed = signRequest({ method: 'GET', url: new URL(HOST), headers: {}, bodyHash: hashHex('') }, keys, TIME);
  expect(signed['x-amz-security-token']).toBe('token');
  expect(signed['authorization']).toContain('SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,');
});
