// Imported before any schema: zod would try `new Function`, which a strict content security policy reports as a violation.
import { config } from 'zod';

config({ jitless: true });
