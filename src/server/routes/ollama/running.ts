import { textResponse } from '../../text-response.ts';
import { ollamaRoute } from './ollama-route.ts';

/** `GET /` and `HEAD /` of a server without a dashboard: clients ask it whether a server is there. */
export const runningRoute = ollamaRoute('GET', '/', 'public', 'A text that says that the server is running.', () =>
  textResponse('RuvLLM is running', { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } }),
);
