// Package schema reads JSON Schema (drafts 4, 6, 7, 2019-09 and 2020-12) and compiles it to a
// grammar that writes only instances which the schema accepts.
//
// Parse gives the normalized form ([Document], [Schema]): references are resolved, the forms of the
// older drafts are those of 2020-12, the order of properties is kept. Schemas are hostile: size,
// depth and references are bounded. What cannot be enforced is an [Error] that names the keyword
// and where it stands.
//
// Compile writes the schema's generation language: properties in the schema's order, compact
// unless white space is asked for. It is a subset of what the schema accepts.
package schema
