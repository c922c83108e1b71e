package schema

// objects reads the keywords of objects.
func (p *parser) objects(pl *place, s *Schema, m Member) (done bool, err error) {
	switch m.Name {
	case "properties":
		s.Properties, err = p.properties(pl, s, m)
	case "patternProperties":
		s.PatternProperties, err = p.properties(pl, s, m)
	case "required":
		if s.Draft > Draft4 && m.Value.Kind == Boolean {
			return true, invalid(s, "required", "is not an array of strings; a property is required in the schema of its object")
		}
		s.Required, err = names(s, m.Name, m.Value)
	case "dependentRequired", "dependentSchemas", "dependencies":
		err = p.dependencies(pl, s, m)
	default:
		return false, nil
	}
	return true, err
}

func (p *parser) properties(pl *place, s *Schema, m Member) ([]Property, error) {
	if m.Value.Kind != Object {
		return nil, invalid(s, m.Name, "is not an object")
	}
	out := make([]Property, len(m.Value.Members))
	for i, sub := range m.Value.Members {
		t, err := p.sub(pl, sub.Value, m.Name+"/"+EscapePointer(sub.Name))
		if err != nil {
			return nil, err
		}
		out[i] = Property{sub.Name, t}
	}
	return out, nil
}

func names(s *Schema, keyword string, v *Value) ([]string, error) {
	if v.Kind != Array {
		return nil, invalid(s, keyword, "is not an array of strings")
	}
	out := make([]string, len(v.Items))
	for i, item := range v.Items {
		if item.Kind != String {
			return nil, invalid(s, keyword, "is not an array of strings")
		}
		out[i] = item.Text
	}
	return out, nil
}

// dependencies reads dependentRequired, dependentSchemas and the older keyword that was both.
func (p *parser) dependencies(pl *place, s *Schema, m Member) error {
	if m.Value.Kind != Object {
		return invalid(s, m.Name, "is not an object")
	}
	for _, sub := range m.Value.Members {
		if m.Name == "dependentRequired" || m.Name == "dependencies" && sub.Value.Kind == Array {
			needs, err := names(s, m.Name, sub.Value)
			if err != nil {
				return err
			}
			s.DependentRequired = append(s.DependentRequired, Dependency{sub.Name, needs})
			continue
		}
		t, err := p.sub(pl, sub.Value, m.Name+"/"+EscapePointer(sub.Name))
		if err != nil {
			return err
		}
		s.DependentSchemas = append(s.DependentSchemas, Property{sub.Name, t})
	}
	return nil
}

// arrays reads the keywords of arrays; an array under items is the older form of prefixItems.
func (p *parser) arrays(pl *place, s *Schema, m Member) (done bool, err error) {
	switch m.Name {
	case "prefixItems":
		s.PrefixItems, err = p.list(pl, s, m)
	case "items":
		if m.Value.Kind == Array {
			s.PrefixItems, err = p.list(pl, s, m)
		} else {
			s.Items, err = p.sub(pl, m.Value, m.Name)
		}
	case "additionalItems":
		if items := pl.value.Get("items"); items != nil && items.Kind == Array {
			s.Items, err = p.sub(pl, m.Value, m.Name)
		}
	case "uniqueItems":
		if m.Value.Kind != Boolean {
			return true, invalid(s, "uniqueItems", "is not a boolean")
		}
		s.UniqueItems = m.Value.Bool
	default:
		return false, nil
	}
	return true, err
}
