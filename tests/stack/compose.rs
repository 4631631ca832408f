//! docker-compose.yml, without starting anything.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use crate::project::{default_port, path, read, root};

/// The lines of each service, by its name: what is indented further than the name.
fn services(file: &str) -> BTreeMap<String, Vec<String>> {
    let mut services = BTreeMap::new();
    let mut current: Option<String> = None;
    let of_services = file.lines().skip_while(|line| *line != "services:").skip(1);
    for line in of_services.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        let indent = line.len() - line.trim_start().len();
        if indent == 2 && line.ends_with(':') {
            let name = line.trim().trim_end_matches(':').to_owned();
            services.insert(name.clone(), Vec::new());
            current = Some(name);
        } else if let Some(lines) = current.as_ref().and_then(|name| services.get_mut(name)) {
            lines.push(line.trim().to_owned());
        }
    }
    services
}

/// The items of a list under `key` in a service.
fn list<'a>(service: &'a [String], key: &str) -> Vec<&'a str> {
    let items = service.iter().skip_while(|line| **line != format!("{key}:")).skip(1);
    items.map_while(|line| line.strip_prefix("- ")).map(|item| item.trim_matches('"')).collect()
}

/// What is wrong with a compose file.
fn faults(file: &str) -> Vec<String> {
    let services = services(file);
    let mut faults = Vec::new();
    if services.len() < 2 {
        faults.push(format!("{} services", services.len()));
    }
    for (name, service) in &services {
        let image = service.iter().find_map(|line| line.strip_prefix("image: ")).unwrap_or("");
        if !is_pinned(image) {
            faults.push(format!("{name}: {image} is not pinned"));
        }
        if !service.contains(&"healthcheck:".to_owned())
            || !service.iter().any(|line| line.starts_with("test: "))
        {
            faults.push(format!("{name}: no health check"));
        }
        let volumes = list(service, "volumes");
        if volumes.is_empty() {
            faults.push(format!("{name}: no volume"));
        }
        for volume in volumes {
            if !is_named(volume, file) && !is_of_the_project(volume) {
                faults.push(format!("{name}: {volume} is neither named nor a file of the project"));
            }
        }
    }
    faults
}

fn is_named(volume: &str, file: &str) -> bool {
    let source = volume.split(':').next().unwrap_or("");
    file.lines().any(|line| line == format!("  {source}:"))
}

/// What is mounted from here is there, and cannot be written.
fn is_of_the_project(volume: &str) -> bool {
    let parts: Vec<&str> = volume.split(':').collect();
    matches!(parts[..], [source, _, "ro"] if source.starts_with("./deploy/") && path(source).exists())
}

/// A tag with at least major and minor version, and no word like "latest".
fn is_pinned(image: &str) -> bool {
    let Some((_, tag)) = image.rsplit_once(':') else { return false };
    let version = tag.strip_prefix('v').unwrap_or(tag);
    version.split('.').count() >= 2
        && version.split('.').all(|part| !part.is_empty() && part.parse::<u32>().is_ok())
}

#[test]
fn every_service_has_a_pinned_image_a_health_check_and_a_named_volume() {
    assert_eq!(faults(&read("docker-compose.yml")), Vec::<String>::new());
}

#[test]
fn a_service_without_one_of_them_would_be_found() {
    let file = read("docker-compose.yml");
    let image = file.lines().find_map(|line| line.trim().strip_prefix("image: ")).unwrap();
    let unpinned = image.split(':').next().unwrap();
    for (guard, instead) in [
        (image, unpinned.to_owned()),
        (image, format!("{unpinned}:latest")),
        (image, format!("{unpinned}:17")),
        ("healthcheck:", "labels:".to_owned()),
        ("- postgres-data:", "- ./data:".to_owned()),
        (
            "- ./deploy/prometheus:/etc/prometheus:ro",
            "- ./deploy/prometheus:/etc/prometheus".to_owned(),
        ),
        ("- ./deploy/prometheus:", "- ./deploy/elsewhere:".to_owned()),
    ] {
        assert!(file.contains(guard), "{guard}");
        let faults = faults(&file.replacen(guard, &instead, 1));
        assert_eq!(faults.len(), 1, "{guard} -> {instead}: {faults:?}");
    }
}

#[test]
fn both_ports_come_from_the_environment_with_the_defaults_of_the_scripts() {
    let services = services(&read("docker-compose.yml"));
    for (service, variable, inside) in
        [("postgres", "PG_PORT", "5432"), ("redpanda", "KAFKA_PORT", "9092")]
    {
        let default = default_port(variable);
        let expected = format!("127.0.0.1:${{{variable}:-{default}}}:{inside}");
        assert_eq!(list(&services[service], "ports"), [expected], "{service}");
    }
}

#[test]
fn the_broker_advertises_the_port_under_which_it_is_reached() {
    let expected = format!("localhost:${{KAFKA_PORT:-{}}}", default_port("KAFKA_PORT"));
    let services = services(&read("docker-compose.yml"));
    let command = list(&services["redpanda"], "command");
    let advertised = command.iter().find_map(|word| word.strip_prefix("--advertise-kafka-addr="));
    assert!(advertised.unwrap().ends_with(&expected), "{advertised:?}");
}

#[test]
fn monitoring_runs_only_where_it_is_asked_for_and_listens_on_the_loopback_alone() {
    let file = read("docker-compose.yml");
    let services = services(&file);
    let monitoring = |service: &Vec<String>| service.contains(&"profiles: [monitoring]".to_owned());
    let names: Vec<&str> =
        services.iter().filter(|(_, lines)| monitoring(lines)).map(|(name, _)| &**name).collect();
    assert_eq!(names, ["grafana", "prometheus"]);
    assert!(
        list(&services["prometheus"], "command")
            .contains(&"--web.listen-address=127.0.0.1:${PROMETHEUS_PORT:-9090}")
    );
    assert!(services["grafana"].contains(&"GF_SERVER_HTTP_ADDR: 127.0.0.1".to_owned()));
    for stop in [
        "down() { compose --profile monitoring down",
        "reset() { compose --profile monitoring down",
    ] {
        assert!(read("stack/docker.sh").contains(stop), "{stop}");
    }
}

/// `compose config` by whichever of the two commands is installed; neither needs an engine.
fn compose_config(environment: &[(&str, &str)]) -> Option<Output> {
    let file = path("docker-compose.yml");
    let commands: [&[&str]; 2] = [&["docker", "compose"], &["docker-compose"]];
    let installed = |command: &&[&str]| {
        let version = Command::new(command[0]).args(&command[1..]).arg("version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let command = commands.into_iter().find(installed)?;
    let output = Command::new(command[0])
        .args(&command[1..])
        .arg("-f")
        .arg(file)
        .arg("config")
        .current_dir(root())
        .env_remove("PG_PORT")
        .env_remove("KAFKA_PORT")
        .env_remove("COMPOSE_PROFILES")
        .envs(environment.iter().copied())
        .output();
    Some(output.unwrap())
}

#[test]
fn compose_starts_prometheus_and_grafana_with_the_profile_and_only_then() {
    let profile = [("COMPOSE_PROFILES", "monitoring"), ("GRAFANA_PORT", "41003")];
    let (Some(usual), Some(monitored)) = (compose_config(&[]), compose_config(&profile)) else {
        println!("skipped: neither docker compose nor docker-compose is installed");
        return;
    };
    let text = |output: Output| String::from_utf8(output.stdout).unwrap();
    let (usual, monitored) = (text(usual), text(monitored));
    for image in ["image: prom/prometheus:", "image: grafana/grafana:"] {
        // The first compose prints services of other profiles too, with their profile.
        assert!(!usual.contains(image) || usual.contains("profiles:"), "{usual}");
        assert!(monitored.contains(image), "{monitored}");
    }
    assert!(monitored.contains("41003"), "{monitored}");
}

#[test]
fn compose_accepts_the_file_and_takes_the_ports_from_the_environment() {
    let ports = [("PG_PORT", "41001"), ("KAFKA_PORT", "41002")];
    let (Some(usual), Some(chosen)) = (compose_config(&[]), compose_config(&ports)) else {
        println!("skipped: neither docker compose nor docker-compose is installed");
        return;
    };
    let text = |output: Output| {
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (usual, chosen) = (text(usual), text(chosen));
    for (name, port) in ports {
        let default = default_port(name);
        assert!(usual.contains(&default) && !usual.contains(port), "{usual}");
        assert!(chosen.contains(port), "{chosen}");
    }
}
